package sqlite

import (
	_ "github.com/belfry-go/belfry/idempotency"
	_ "github.com/belfry-go/belfry/scheduler"
)
