// Package ring is there.
package ring
