package oracle

import _ "github.com/belfry-go/belfry/jobs"
