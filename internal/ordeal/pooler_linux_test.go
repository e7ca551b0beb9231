package ordeal

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/internal/testservers"
)

// F46: PgBouncer gives each transaction another connection, and no statement prepared on one is known on the next. The
// store's laws hold all the same, in the mode of the client that prepares nothing.
func TestPooler(t *testing.T) {
	t.Parallel()
	if !*pooler {
		t.Skip("skipped: it is the whole suite of stores once more; -ordeal.pooler runs it")
	}
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		t.Skip("skipped: PgBouncer is not installed; to install it: apt-get install pgbouncer")
	}
	server := testservers.Postgres(t)
	addr := startPooler(t, program, server.Addr())
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		dsn := server.Database(t).At(addr).DSN() + "&default_query_exec_mode=exec"
		another := func(t *testing.T) storetest.Store { return openPostgres(t, dsn, plenty) }
		return storetest.Harness{Store: another(t), Second: another}
	})
}

const poolerConfig = `[databases]
* = host=%s port=%s user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 1000
`

// startPooler starts PgBouncer before a server, until the end of the test, and returns where it listens.
func startPooler(t *testing.T, program, server string) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "belfry-pooler-") // t.TempDir's would be closed to another user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	port := freePort(t)
	host, serverPort, _ := net.SplitHostPort(server)
	config := filepath.Join(folder, "pgbouncer.ini")
	if err := os.WriteFile(config, fmt.Appendf(nil, poolerConfig, host, serverPort, port), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd := exec.CommandContext(t.Context(), program, config)
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.SysProcAttr = unprivileged(t)
	started, ended := make(chan error), make(chan struct{})
	go func() { // Linux takes the end of the thread that started it for the end of its parent
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is killed
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // errs only if it has ended
		<-ended
		if t.Failed() {
			t.Logf("PgBouncer said:\n%s", said.String())
		}
	})
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for tick, late := time.Tick(10*time.Millisecond), time.After(10*time.Second); ; {
		c, err := net.Dial("tcp", addr)
		if err == nil {
			c.Close()
			return addr
		}
		select {
		case <-tick:
		case <-late:
			t.Fatalf("PgBouncer does not listen: %v\n%s", err, said.String())
		}
	}
}

// unprivileged has a process of root's run as nobody, which PgBouncer insists upon, and end with this one.
func unprivileged(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		return attr
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(nobody.Uid) // numbers, on Linux
	gid, _ := strconv.Atoi(nobody.Gid)
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
