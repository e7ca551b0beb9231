package scheduler

import _ "github.com/jackc/pgx/v5"
