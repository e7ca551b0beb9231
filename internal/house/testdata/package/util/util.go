// Package util is everything.
package util
