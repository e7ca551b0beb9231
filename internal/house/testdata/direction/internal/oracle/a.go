package oracle

import (
	_ "time"

	_ "github.com/belfry-go/belfry/jobs"
)
