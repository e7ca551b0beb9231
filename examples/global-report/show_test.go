package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// program is this program, at work beside the test.
type program struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines *bufio.Scanner
	told  []string
}

// start starts it; when the test fails it is killed, and its replicas end with it.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{t: t, cmd: exec.CommandContext(ctx, self, append(args, "--every", "1s", "--lease", "2s")...)}
	p.cmd.Stderr = t.Output()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// find reads on until a line has the pattern, and returns what it finds there.
func (p *program) find(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	for p.lines.Scan() {
		p.told = append(p.told, p.lines.Text())
		if m := re.FindStringSubmatch(p.lines.Text()); m != nil {
			return m
		}
	}
	p.t.Fatalf("it has ended without a line like %s (%v):\n%s", pattern, p.cmd.Wait(), strings.Join(p.told, "\n"))
	return nil
}

// end reads the rest, wants the program to end well, and returns all that it said.
func (p *program) end() string {
	p.t.Helper()
	for p.lines.Scan() {
		p.told = append(p.told, p.lines.Text())
	}
	all := strings.Join(p.told, "\n")
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("it ended with %v:\n%s", err, all)
	}
	return all
}

// checkTerms wants terms that rise from one leader to the next, and at least so many.
func (p *program) checkTerms(least int) {
	p.t.Helper()
	var terms []int64
	for _, m := range regexp.MustCompile(`(?m)^[abc]\tleads\t.* in term (\d+): `).FindAllStringSubmatch(strings.Join(p.told, "\n"), -1) {
		term, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		if n := len(terms); n > 0 && term <= terms[n-1] {
			p.t.Errorf("term %d follows term %d", term, terms[n-1])
		}
		terms = append(terms, term)
	}
	if len(terms) < least {
		p.t.Errorf("leaders in terms %v, want %d or more", terms, least)
	}
}

const noneLost = `(?m)^\treports: \d+, terms: \d+, none twice.*, none lost$`

// TestKill is the show by itself, on an etcd of its own: a leader is killed, the next one leaves, and no report is lost or made twice.
func TestKill(t *testing.T) {
	t.Parallel()
	p := start(t, "--kill")
	all := p.end()
	for _, want := range []string{`^etcd\tlistens at 127\.0\.0\.1:\d+`, `\n\tkill -9 \d+, which is [abc]\n`, `\n[abc]\t\thas ended: signal: killed\n`,
		`\n\t[abc] is to leave\n`, `\n[abc]\t\thas ended\n`, `\n[abc]\tcounts\tin term \d+\n`, `\n[abc]\tcounts\tno more in term \d+\n`, noneLost} {
		if !regexp.MustCompile(want).MatchString(all) {
			t.Errorf("no line like %q in\n%s", want, all)
		}
	}
	p.checkTerms(3)
}

// TestByHand is what the reader does where the store elects: kill the process that is named, wait for the next leader's report, Ctrl-C.
func TestByHand(t *testing.T) {
	t.Parallel()
	p := start(t, "--store-election")
	pid, err := strconv.Atoi(p.find(`^\tkill -9 (\d+) kills the leader`)[1])
	if err != nil {
		t.Fatal(err)
	}
	p.find(`^[abc]\treport\tof `)
	leader, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	next := p.find(`^([abc])\tleads\t.*: [abc]: its session ended$`)[1]
	p.find(`^` + next + `\treport\tof `)
	if err := p.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if all := p.end(); !regexp.MustCompile(noneLost).MatchString(all) || strings.Contains(all, "etcd") {
		t.Errorf("it says\n%s", all)
	}
	p.checkTerms(2)
}

// TestSum: a report that is there twice is an error, and one that lacks between two others is named; one more is of a later leader.
func TestSum(t *testing.T) {
	t.Parallel()
	db, err := openDatabase(t.Context(), t.TempDir()+"/reports.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	first := time.Date(2026, 10, 1, 4, 0, 0, 0, time.UTC)
	add := func(after time.Duration, term int) {
		t.Helper()
		if _, err := db.db.ExecContext(t.Context(), `insert into reports values (?, ?)`, first.Add(after).Format(time.RFC3339), term); err != nil {
			t.Fatal(err)
		}
	}
	add(0, 3)
	add(2*time.Second, 3)
	add(6*time.Second, 8)
	reports, terms, lacking, err := db.sum(t.Context(), 2*time.Second)
	if reports != 3 || terms != 2 || len(lacking) != 1 || !lacking[0].Equal(first.Add(4*time.Second)) || err != nil {
		t.Errorf("%d reports in %d terms, %v lacking (%v)", reports, terms, lacking, err)
	}
	s := &stage{o: showOptions{cluster: cluster{every: 2 * time.Second}}, db: db}
	if err := s.count(t.Context()); err == nil || err.Error() != "the report of 04:00:04Z is lost" {
		t.Errorf("a report is lost: got %v", err)
	}
	add(2*time.Second, 8)
	if _, _, _, err := db.sum(t.Context(), 2*time.Second); err == nil || err.Error() != "the report of 04:00:02Z is there 2 times" {
		t.Errorf("a report is there twice: got %v", err)
	}
}

// TestCounter: what a leader that was followed by another still writes is refused.
func TestCounter(t *testing.T) {
	t.Parallel()
	db, err := openDatabase(t.Context(), t.TempDir()+"/reports.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.close()
	for _, c := range []struct {
		term    int64
		refused bool
	}{{3, false}, {3, false}, {8, false}, {3, true}, {8, false}} {
		if err := db.count(t.Context(), c.term); (err != nil) != c.refused {
			t.Errorf("term %d: %v, refused: want %t", c.term, err, c.refused)
		}
	}
}
