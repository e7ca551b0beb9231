package jobs

import _ "github.com/belfry-go/belfry/ring"
