//go:build unix

package rig

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// before is the commit whose replicas are the older ones of TestUpgrades: the one that is to be rolled back to. With a
// release it becomes that release's. Its stores have this version's schema, or the test would be one of a migration.
const before = "45bd993d7c6a"

// fresh is a job that the newer replicas have and the older ones lack.
var fresh = work{Name: "fresh", Every: 3 * time.Second, Keys: 8, Takes: 20 * time.Millisecond}

// T19, F25: three replicas go from this version to an older one and back, one at a time, each restart on a due second.
// Nothing is lost and nothing done twice, also of a job that the older ones do not have.
//
// The older replicas are built from what the repository's history has, not from this tree with something switched: what
// would be switched is only what somebody thought of.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	recorded(t)
	program := buildOlder(t)
	g := newFigures("T19")
	g.spread(t, trials(0, 2, 30), min(3, trials(0, 1, 3)), func(t *testing.T, _, n int) {
		s := storeFigured(append(mix(), fresh))
		s.MissedAfter = time.Hour // while no replica has the fresh job its dues wait
		for i := range s.Works {
			s.Works[i].InTx = false // the older rig knows no such effects
		}
		f := newFleet(t, s)
		f.three()
		var stops []int64
		older := map[int]bool{}
		for range n {
			stops = append(stops, f.roll(func(name string) { older[f.startOlder(program, name).Pid()] = true })...)
			stops = append(stops, f.roll(func(name string) { f.start(name, nil) })...)
		}
		g.judged(n, f.settle(law{}))
		did := 0
		for _, l := range f.book.lines {
			if l.Phase == committed && older[l.Pid] {
				did++
			}
		}
		t.Logf("%d older replicas completed %d runs", len(older), did)
		if did == 0 {
			t.Error("want some")
		}
		for _, due := range stops {
			at := dueIn(due, due+1)
			g.add("due then or a second later: started late by", lateOf(f.starts(func(r run) bool { return r.job != fresh.Name && at(r) }))...)
		}
	})
	g.say(t, "rolls of three replicas to the version of commit %s and back, each restart on a due second", before)
}

// roll stops each replica on a due second and has it started again, and returns the seconds.
func (f *fleet) roll(start func(name string)) (stops []int64) {
	f.Helper()
	for _, name := range f.names() {
		stops = append(stops, f.stopOnDue(f.proc(name)))
		start(name)
		f.ready()
	}
	return stops
}

// startOlder is start of an older build, which knew SQLite alone.
func (f *fleet) startOlder(program, name string) *proc {
	f.Helper()
	s := f.base
	s.Name = name
	s.Works = slices.DeleteFunc(slices.Clone(s.Works), func(w work) bool { return w.Name == fresh.Name })
	p := f.spawnAs(program, name, s, func(s spec) any {
		return struct {
			spec
			Store string
		}{s, s.Store.DSN}
	})
	f.await(name+" gossips", func() bool { return p.state.Addr != "" || p.ended })
	return p
}

// buildOlder builds the rig of the older version, and returns its path. Where the history does not reach back to it, as
// in a shallow clone, the test is skipped.
func buildOlder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "belfry-older-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	git := func(args ...string) *exec.Cmd {
		return exec.Command("git", append([]string{"-c", "safe.directory=*"}, args...)...)
	}
	if out, err := git("cat-file", "-e", before+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("skipped: the older version is built from commit %s, which is not in this clone's history: %v: %s; fetch it with git fetch --unshallow", before, err, out)
	}
	tree := git("archive", "--format=tar", before)
	tree.Dir = filepath.Join("..", "..") // an archive is of the folder that it is asked for in
	var text, said bytes.Buffer
	tree.Stdout, tree.Stderr = &text, &said
	if err := tree.Run(); err != nil {
		t.Fatalf("git archive: %v: %s", err, &said)
	}
	untar := exec.Command("tar", "-x", "-C", dir)
	untar.Stdin = &text
	if out, err := untar.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v: %s", err, out)
	}
	program, began := filepath.Join(dir, "rig.test"), time.Now()
	build := exec.Command("go", "test", "-c", "-vet=off", "-buildvcs=false", "-o", program, "./internal/rig")
	build.Dir = dir
	build.Env = append(os.Environ(), "PWD="+dir)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build of commit %s: %v: %s", before, err, out)
	}
	t.Logf("built the replicas of commit %s in %v", before, time.Since(began).Round(time.Second))
	return program
}
