package house

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// checkMod: this module asks for the first patch of a Go release, so that it forces no toolchain on those who import
// it, and replaces nothing, since a consumer's build would not.
func checkMod(t *tree) (bad []string) {
	for _, m := range t.mods {
		goes := 0
		for i, line := range strings.Split(m.text, "\n") {
			word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			at := fmt.Sprintf("%s:%d: ", m.path, i+1)
			switch word {
			case "go":
				goes++
				if rest != "1.26.0" {
					bad = append(bad, at+"go "+rest+"; write exactly go 1.26.0")
				}
			case "toolchain":
				bad = append(bad, at+"toolchain line; remove it")
			case "replace":
				bad = append(bad, at+"replace; a consumer's build does not see it")
			}
		}
		if goes != 1 {
			bad = append(bad, fmt.Sprintf("%s:1: %d go lines; write exactly go 1.26.0", m.path, goes))
		}
	}
	return bad
}

// fence is a fenced block of a page.
type fence struct {
	lang string
	line int // of its first line of text
	body []string
}

// fences lists a page's fenced blocks of code, indented ones (in a list) without their indentation.
func fences(text string) (all []fence) {
	var open *fence
	for i, line := range strings.Split(text, "\n") {
		lang, ok := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case ok && open == nil:
			open = &fence{lang: lang, line: i + 2}
		case ok:
			open.body = dedent(open.body)
			all = append(all, *open)
			open = nil
		case open != nil:
			open.body = append(open.body, line)
		}
	}
	return all
}

// firstBlocks are the README's first two sh blocks: what a reader pastes before anything else.
var firstBlocks = []string{"go run ./cmd/belfry demo", "go test ./..."}

// checkReadme: the first screen stays one, and what it offers to paste first is the demo and then the tests.
func checkReadme(t *tree) (bad []string) {
	i := slices.IndexFunc(t.pages, func(p page) bool { return p.path == "README.md" })
	if i < 0 {
		return []string{"README.md:1: there is none"}
	}
	readme := t.pages[i]
	if n := strings.Count(readme.text, "\n"); n > maxReadme {
		bad = append(bad, fmt.Sprintf("README.md:%d: %d lines; at most %d", maxReadme+1, n, maxReadme))
	}
	blocks := slices.DeleteFunc(fences(readme.text), func(b fence) bool { return b.lang != "sh" })
	for i, want := range firstBlocks {
		if i >= len(blocks) {
			bad = append(bad, fmt.Sprintf("README.md:1: sh block %d is missing; it is exactly %q", i+1, want))
		} else if got := strings.Join(blocks[i].body, "\n"); got != want {
			bad = append(bad, fmt.Sprintf("README.md:%d: sh block %d is %q; it is exactly %q", blocks[i].line, i+1, got, want))
		}
	}
	return bad
}

// checkSnippet: Go code on a page stands, to the letter but for its indentation, in a test or an example, where the
// compiler reads it too.
func checkSnippet(t *tree) (bad []string) {
	var sources [][]string
	for _, f := range t.files {
		if f.test() || f.under("examples") {
			sources = append(sources, strings.Split(f.text, "\n"))
		}
	}
	for _, p := range t.pages {
		for _, b := range fences(p.text) {
			if b.lang == "go" && !slices.ContainsFunc(sources, func(s []string) bool { return stands(b.body, s) }) {
				bad = append(bad, fmt.Sprintf("%s:%d: this Go code stands in no test and no example", p.path, b.line))
			}
		}
	}
	return bad
}

// stands reports whether the snippet's lines follow each other in the source, indented there as they may be.
func stands(snippet, source []string) bool {
	n := len(snippet)
	if n == 0 {
		return false
	}
	for i := 0; i+n <= len(source); i++ {
		if strings.HasSuffix(source[i], snippet[0]) && slices.Equal(dedent(source[i:i+n]), snippet) {
			return true
		}
	}
	return false
}

// dedent returns the lines without the white space that all of them begin with; empty lines do not count.
func dedent(lines []string) []string {
	margin, found := "", false
	for _, l := range lines {
		text := strings.TrimLeft(l, " \t")
		if text == "" {
			continue
		}
		lead := l[:len(l)-len(text)]
		for found && !strings.HasPrefix(lead, margin) {
			margin = margin[:len(margin)-1]
		}
		if !found {
			margin, found = lead, true
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = strings.TrimPrefix(l, margin)
	}
	return out
}

// checkLink: a page's links to files of this repository lead somewhere. Go code may look like a link: f[T](x).
func checkLink(t *tree) (bad []string) {
	for _, p := range t.pages {
		code := false
		for i, line := range strings.Split(p.text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			if code {
				continue
			}
			for _, to := range links(line) {
				if _, err := fs.Stat(t.root, path.Join(path.Dir(p.path), to)); err != nil {
					bad = append(bad, fmt.Sprintf("%s:%d: link to %s leads nowhere", p.path, i+1, to))
				}
			}
		}
	}
	return bad
}

// links lists the files that a line of Markdown links to, without their anchors.
func links(line string) (to []string) {
	for {
		_, rest, ok := strings.Cut(line, "](")
		if !ok {
			return to
		}
		target, rest, ok := strings.Cut(rest, ")")
		if !ok {
			return to
		}
		line = rest
		target, _, _ = strings.Cut(target, "#")
		if target != "" && !strings.Contains(target, ":") {
			to = append(to, target)
		}
	}
}
