package membership

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	ok := Config{Name: "a", Namespace: "test", Logger: quietLog()}
	for name, c := range map[string]struct {
		change func(*Config)
		says   []string
	}{
		"empty namespace": {func(c *Config) { c.Namespace = "" }, []string{"Namespace is empty", "set Config.Namespace"}},
		"bad namespace":   {func(c *Config) { c.Namespace = "a b" }, []string{`"a b"`, "A-Z"}},
		"long namespace":  {func(c *Config) { c.Namespace = strings.Repeat("n", 65) }, []string{"1 to 64"}},
		"long name":       {func(c *Config) { c.Name = strings.Repeat("n", 65) }, []string{"1 to 64", "Config.Name"}},
		"bad name":        {func(c *Config) { c.Name = "a/b" }, []string{`"a/b"`}},
		"long version":    {func(c *Config) { c.Version = strings.Repeat("v", 33) }, []string{"33 bytes", "at most 32"}},
		"profile":         {func(c *Config) { c.Profile = 3 }, []string{"Fast, LAN or WAN"}},
		"key length":      {func(c *Config) { c.Secrets = [][]byte{make([]byte, 15)} }, []string{"15 bytes", "16, 24 or 32"}},
		"one key twice":   {func(c *Config) { c.Secrets = [][]byte{make([]byte, 16), make([]byte, 16)} }, []string{"secret 2", "twice"}},
		"keys":            {func(c *Config) { c.Secrets = make([][]byte, 9) }, []string{"9 secrets", "at most 8"}},
		"long zone":       {func(c *Config) { c.Zone = strings.Repeat("z", 33) }, []string{"zone", "33 bytes", "at most 32"}},
		"odd zone":        {func(c *Config) { c.Zone = "a\x1b" }, []string{"zone", "printable ASCII"}},
		"expect":          {func(c *Config) { c.Expect = -1 }, []string{"expect -1", "0 to 1000"}},
		"no network":      {func(c *Config) { c.Allow = make([]netip.Prefix, 1) }, []string{"Allow", "netip.ParsePrefix"}},
		"seed, no port":   {func(c *Config) { c.Seeds = []string{"db"} }, []string{`"db"`, "host:port"}},
		"seed, port 0":    {func(c *Config) { c.Seeds = []string{"db:0"} }, []string{`"db:0"`, "1 to 65535"}},
		"seed, no host":   {func(c *Config) { c.Seeds = []string{":1"} }, []string{`":1"`, "no host"}},
		"seeds":           {func(c *Config) { c.Seeds = make([]string, 65) }, []string{"65 seeds", "at most 64"}},
		"all at once": {func(c *Config) { c.Namespace, c.Name, c.Profile = "", "/", -1 },
			[]string{"Namespace", `"/"`, "profile -1"}},
		"open door":        {func(c *Config) { c.Bind = "0.0.0.0:0" }, []string{"0.0.0.0:0", "no key", "Config.Secrets", "127.0.0.1"}},
		"all interfaces":   {func(c *Config) { c.Bind = ":0" }, []string{"no key"}},
		"bind":             {func(c *Config) { c.Bind = "127.0.0.1" }, []string{"bind", "host:port"}},
		"bind port":        {func(c *Config) { c.Bind = "127.0.0.1:x" }, []string{"0 to 65535"}},
		"not ours":         {func(c *Config) { c.Bind, c.Secrets = "192.0.2.1:0", [][]byte{make([]byte, 16)} }, []string{"192.0.2.1"}},
		"advertise":        {func(c *Config) { c.Advertise = "0.0.0.0:1" }, []string{"advertise", "unspecified"}},
		"IPv6, all, alone": {func(c *Config) { c.Bind, c.Secrets = "[::]:0", [][]byte{make([]byte, 16)} }, []string{"Config.Advertise"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := ok
			c.change(&cfg)
			cl, err := Join(t.Context(), cfg)
			if err == nil {
				_ = cl.Close()
				t.Fatal("taken")
			}
			for _, s := range append(c.says, "membership: ") {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%v: does not say %q", err, s)
				}
			}
		})
	}
}

func TestAdvertise(t *testing.T) {
	t.Parallel()
	for give, want := range map[string]string{"127.0.0.2:99": "127.0.0.2:99", "localhost:99": ":99", "127.0.0.3": "127.0.0.3:"} {
		c := joinReal(t, Config{Name: "a", Advertise: give})
		if !strings.Contains(c.Addr(), want) || strings.HasSuffix(c.Addr(), ":0") {
			t.Errorf("%s became %s", give, c.Addr())
		}
	}
}

// TestProfiles pins what was measured; see Profile.settings.
func TestProfiles(t *testing.T) {
	t.Parallel()
	for p, want := range map[Profile][4]time.Duration{
		Fast: {320 * time.Millisecond, 120 * time.Millisecond, 100 * time.Millisecond, 8},
		LAN:  {time.Second, 500 * time.Millisecond, 100 * time.Millisecond, 8},
		WAN:  {5 * time.Second, 3 * time.Second, 500 * time.Millisecond, 8},
	} {
		s := p.settings()
		got := [4]time.Duration{s.ProbeInterval, s.ProbeTimeout, s.GossipInterval, time.Duration(s.RetransmitMult)}
		if got != want || s.EnableCompression {
			t.Errorf("profile %d: %v, compression %v", p, got, s.EnableCompression)
		}
	}
	if s := Fast.settings(); s.SuspicionMult != 2 || s.GossipNodes != 4 {
		t.Errorf("Fast suspects %d, gossips with %d", s.SuspicionMult, s.GossipNodes)
	}
}
