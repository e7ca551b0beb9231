// Package twice is described differently.
package twice
