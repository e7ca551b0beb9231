// Package mysql keeps a store in a MySQL (8.0 or later) or MariaDB (10.6 or later) database.
package mysql
