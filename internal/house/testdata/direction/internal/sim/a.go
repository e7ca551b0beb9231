package sim

import (
	_ "github.com/belfry-go/belfry/cmd/belfry"
	_ "github.com/belfry-go/belfry/internal/core"
)
