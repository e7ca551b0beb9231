package ring

import _ "github.com/belfry-go/belfry/jobs"
