package idempotency

import _ "github.com/belfry-go/belfry/jobs"
