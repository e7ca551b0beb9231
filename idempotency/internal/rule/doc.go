// Package rule has laws of the contract in package idempotency as pure functions, for drivers that read with SQL what
// they decide by: what a claim is answered, which decision is won, what lags. It also has the small things that
// such drivers share: bitmaps of partitions and listings page by page.
package rule
