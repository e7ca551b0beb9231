// Package ordeal puts the store drivers through what happens to them in production. It has no code but its tests.
package ordeal
