package scheduler

import (
	_ "github.com/buraksezer/consistent"
	_ "github.com/hashicorp/memberlist"
	_ "github.com/robfig/cron/v3"
	_ "modernc.org/sqlite"
)
