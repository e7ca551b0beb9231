// Package storeurl opens the store that a command was told of by a URL: sqlite:PATH, postgres://… or mysql://….
//
// A password never leaves the URL it came in: no error, no String and no argument of a process has it. It is refused
// where it was given as an argument, which every user of a host can read.
package storeurl
