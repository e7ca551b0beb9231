package sqlite

import (
	_ "github.com/redis/go-redis/v9"
	_ "modernc.org/sqlite/lib"
)
