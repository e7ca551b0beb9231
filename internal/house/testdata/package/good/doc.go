// Package good is described.
package good
