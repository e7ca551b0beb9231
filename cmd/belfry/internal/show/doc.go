// Package show writes what a store holds for people: in lines and columns, with nothing in it that a terminal would obey.
//
// Keys, reasons and the texts of errors come from programs and from their users. What is not printable in them, such as
// the escape that begins a terminal's commands, or a mark that turns the direction of writing, is shown as Go writes it.
package show
