// Package bugs tests the tests. It is a catalogue of mistakes, each a small change of the product's own code, and for each the test that has to
// fail of it: figure T21. It has no code but its tests, and the product no switch for any of this.
//
// A bug is a file of testdata. Above the changes it says what the mistake is, where it comes from (see origins.txt), the test with its flags, and a
// pattern of the message that this fails with, so that what does not compile, or fails for another reason, does not count as caught. The changes
// are as in a diff, but without line numbers. Of the lines that go, and those round them, a change shows as few as tell the place: they have to be
// in the file once, and go stale when somebody edits them.
//
// By default it is tested only that each bug still fits the code, that its test exists, and that no mistake of origins.txt is without one. To try
// them, with the go command's -overlay, so that nothing in the tree is touched:
//
//	go test -tags bugs ./internal/bugs -count 1 -v -bugs.quick
//	go test -tags bugs ./internal/bugs -count 1 -v -bugs.only no-sweep,no-rejoin
//	go test -tags bugs ./internal/bugs -count 1 -v -timeout 0
//
// The first tries eight that take little. The last tries all, and then runs the same tests with the same flags without any bug, where they have to
// pass. A bug whose test needs a database server is not run where there is none.
//
// To add a bug: write the file, try it, and name its origin in origins.txt. One that no test catches is a hole; the test that closes it
// comes with the bug, in the package that has the mistake.
//
// Bugs that are no change of the code, but something wrong that is put in the place of a part, are tested where that part is: stores in
// internal/sim (TestBrokenStores) and internal/ordeal (TestBrokenStoreIsCaught), electors in membership/electortest, ledgers in
// internal/rig and internal/etcdrig (TestJudge).
package bugs
