// Package rule has laws of the contract in package idempotency as pure functions, for drivers that read with SQL what
// they decide by: what a claim is answered, which decision is won, what lags, what becomes of passes when the
// number of partitions changes. It also has what else such drivers share: the versions and the shape of a schema,
// bitmaps of partitions, listings page by page.
package rule
