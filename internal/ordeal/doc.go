// Package ordeal puts the store drivers through what happens to them in production, on servers of its own: their
// processes are killed, the network between loses, tears, delays and falls silent, connections run out, the data comes
// back older or not at all. It has no code but its tests, each of which is one case for all drivers.
//
// What many clients ask and are answered meanwhile is checked to be what a register for each occurrence would have
// answered, one question after the other (linearizability). A call that ended with an error may have happened, may
// happen later, or never.
//
// By default the tests are short. Longer:
//
//	go test ./internal/ordeal -run 'Linearizable|Restarts|FaultyNetwork' -ordeal.ops 200000 -ordeal.kills 50 -timeout 0
//	go test ./internal/ordeal -run LostCommitReplies -ordeal.commits 500 -timeout 0
//	go test ./internal/ordeal -run Outages -ordeal.outages 50 -parallel 16 -timeout 0
//	go test ./internal/ordeal -run Pooler -ordeal.pooler
//	STORETEST_STRESS=10000 go test ./internal/ordeal -run Stress -timeout 0
//
// A test that fails prints the seed of its choices, for -ordeal.seed; the interleaving of its clients is not repeated.
package ordeal
