//go:build race

package membership

// many is smaller with the race detector, which slows thirty members in one process to a crawl; the code is the same.
const many = 12
