//go:build !race

package postgres

const raced = false
