// Package twice is described.
package twice
