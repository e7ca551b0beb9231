package scheduler

import (
	_ "github.com/belfry-go/belfry/idempotency"
	_ "github.com/belfry-go/belfry/idempotency/sqlite"
	_ "github.com/belfry-go/belfry/internal/core"
	_ "github.com/belfry-go/belfry/jobs"
	_ "github.com/belfry-go/belfry/membership"
	_ "github.com/belfry-go/belfry/ring"
)
