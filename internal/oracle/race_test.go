//go:build race

package oracle_test

func init() {
	underRace = true
	*yearsFlag, *seedsFlag = 2, 6 // unless the command line says otherwise
}
