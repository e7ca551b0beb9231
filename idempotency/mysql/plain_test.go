//go:build !race

package mysql

const raced = false
