package jobs

import _ "github.com/belfry-go/belfry/ring" // lawful: a test may compare the two
