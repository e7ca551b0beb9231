//go:build unix

package zone

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// DP-11: an image with nothing in it but the program.
func TestEmptyImage(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs the right to change the root directory; run as root")
	}
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	image := t.TempDir()
	if err := os.WriteFile(filepath.Join(image, "program"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"Asia/Beirut": ours().version + " 2023-03-27T03:00:00+03:00",
		"Asia/Berlin": ours().version + ` unknown zone "Asia/Berlin"; use an IANA name such as UTC or Europe/Berlin`,
	} {
		cmd := exec.Command("/program", childArg, name)
		cmd.Env = []string{"ZONEINFO=/nowhere"}
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: image}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.EPERM) {
			t.Skipf("%v; needs a program without shared libraries, and the right to change the root directory", err)
		}
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%s: %q, %v; want %q", name, out, err, want)
		}
	}
}
