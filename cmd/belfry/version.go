package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/jobs"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			info, _ := debug.ReadBuildInfo()
			fmt.Fprintln(cmd.OutOrStdout(), version(info))
		},
	}
}

// version is one line of what the build knows of itself; info may be nil.
func version(info *debug.BuildInfo) string {
	v, revision, modified := "(unknown)", "", ""
	if info != nil {
		v = info.Main.Version
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = ", commit " + s.Value[:min(12, len(s.Value))]
			case s.Key == "vcs.modified" && s.Value == "true":
				modified = " with changes"
			}
		}
	}
	return fmt.Sprintf("belfry %s%s%s, %s %s/%s, zones %s", v, revision, modified, runtime.Version(), runtime.GOOS, runtime.GOARCH, jobs.ZoneVersion())
}
