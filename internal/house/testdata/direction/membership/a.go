package membership

import _ "github.com/belfry-go/belfry/scheduler"
