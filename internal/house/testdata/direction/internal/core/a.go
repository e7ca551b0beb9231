package core

import (
	_ "github.com/belfry-go/belfry/jobs"
	_ "github.com/belfry-go/belfry/scheduler"
)
