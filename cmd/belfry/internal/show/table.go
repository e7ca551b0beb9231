package show

import (
	"bytes"
	"io"
	"slices"
	"strings"
)

// Table is rows in aligned columns, for people. A column in which nothing stands is left out.
type Table struct {
	head []string
	rows [][]string
}

// NewTable makes a table of columns by their heads.
func NewTable(head ...string) *Table { return &Table{head: head} }

// Add adds a row: a cell for each column, of printable text.
func (t *Table) Add(cells ...string) { t.rows = append(t.rows, cells) }

// Write writes the head and the rows, with two blanks between columns and none at the end of a line.
func (t *Table) Write(out io.Writer) error {
	widths := make([]int, len(t.head))
	for i := range t.head {
		for _, row := range t.rows {
			widths[i] = max(widths[i], Width(row[i]))
		}
		if widths[i] > 0 {
			widths[i] = max(widths[i], Width(t.head[i]))
		}
	}
	var b bytes.Buffer
	for _, row := range slices.Concat([][]string{t.head}, t.rows) {
		var line strings.Builder
		for i, cell := range row {
			if widths[i] > 0 {
				line.WriteString(cell + strings.Repeat(" ", widths[i]-Width(cell)+2))
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := b.WriteTo(out)
	return err
}
