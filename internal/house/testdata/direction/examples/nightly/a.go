package main

import (
	_ "github.com/belfry-go/belfry/idempotency/sqlite"
	_ "github.com/belfry-go/belfry/internal/sim"
	_ "github.com/belfry-go/belfry/scheduler"
)
