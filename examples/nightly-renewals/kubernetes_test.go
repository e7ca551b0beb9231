package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"
)

// What the manifest is made of, as far as the code has something to say about it.
type (
	document struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct {
			ClusterIP                string `yaml:"clusterIP"`
			PublishNotReadyAddresses bool   `yaml:"publishNotReadyAddresses"`
			Selector                 map[string]any
			Ports                    []port
			Replicas                 int
			ServiceName              string `yaml:"serviceName"`
			MaxUnavailable           int    `yaml:"maxUnavailable"`
			Template                 struct {
				Metadata struct{ Labels, Annotations map[string]any }
				Spec     podSpec
			}
		}
	}
	podSpec struct {
		Grace           int `yaml:"terminationGracePeriodSeconds"`
		SecurityContext struct {
			RunAsNonRoot bool `yaml:"runAsNonRoot"`
		} `yaml:"securityContext"`
		Containers []container
		Volumes    []struct {
			Name   string
			Secret struct {
				SecretName string `yaml:"secretName"`
			}
		}
	}
	container struct {
		Args            []string
		Env             []variable
		Ports           []port
		Readiness       probe `yaml:"readinessProbe"`
		Liveness        probe `yaml:"livenessProbe"`
		Resources       struct{ Limits map[string]string }
		SecurityContext struct {
			AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
			ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		} `yaml:"securityContext"`
		VolumeMounts []struct {
			Name      string
			MountPath string `yaml:"mountPath"`
			ReadOnly  bool   `yaml:"readOnly"`
		} `yaml:"volumeMounts"`
	}
	variable struct {
		Name, Value string
		ValueFrom   struct {
			FieldRef struct {
				FieldPath string `yaml:"fieldPath"`
			} `yaml:"fieldRef"`
			SecretKeyRef struct{ Name, Key string } `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	}
	port struct {
		Name, Protocol string
		Port           int
		TargetPort     string `yaml:"targetPort"`
		ContainerPort  int    `yaml:"containerPort"`
	}
	probe struct {
		HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
		Delay   int                         `yaml:"initialDelaySeconds"`
	}
)

// manifest is kubernetes.yaml, by kind.
func manifest(t *testing.T) map[string]document {
	t.Helper()
	text, err := os.ReadFile("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]document{}
	for in := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var d document
		err := in.Decode(&d)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all[d.Kind] = d
	}
	for _, kind := range []string{"Service", "StatefulSet", "PodDisruptionBudget"} {
		if _, ok := all[kind]; !ok {
			t.Fatalf("the manifest has no %s", kind)
		}
	}
	if n := len(all["StatefulSet"].Spec.Template.Spec.Containers); n != 1 {
		t.Fatalf("%d containers, want one", n)
	}
	return all
}

// started is the pod: the options that its arguments come to, once its variables are put into them.
func started(t *testing.T, c container) options {
	t.Helper()
	var o options
	args := slices.Clone(c.Args)
	for i, arg := range args {
		args[i] = regexp.MustCompile(`\$\(([A-Z_]+)\)`).ReplaceAllStringFunc(arg, func(ref string) string {
			name := ref[2 : len(ref)-1]
			if !slices.ContainsFunc(c.Env, func(v variable) bool { return v.Name == name }) {
				t.Errorf("argument %q names the variable %s, which the container does not have", arg, name)
			}
			return name
		})
	}
	if err := parse(o.flags(), args); err != nil {
		t.Fatalf("the program does not take the container's arguments: %v", err)
	}
	return o
}

func TestManifestGossip(t *testing.T) {
	t.Parallel()
	all := manifest(t)
	service, set := all["Service"], all["StatefulSet"]
	c := set.Spec.Template.Spec.Containers[0]
	o := started(t, c)
	if service.Spec.ClusterIP != "None" || !service.Spec.PublishNotReadyAddresses {
		t.Errorf("the gossip service is not headless, or hides replicas that are not ready: %+v", service.Spec)
	}
	if set.Spec.ServiceName != service.Metadata.Name {
		t.Errorf("the set's service is %q, the gossip service %q", set.Spec.ServiceName, service.Metadata.Name)
	}
	for name, value := range service.Spec.Selector {
		if set.Spec.Template.Metadata.Labels[name] != value {
			t.Errorf("the service selects %s=%v, the pods have %v", name, value, set.Spec.Template.Metadata.Labels)
		}
	}
	host, bound, err := net.SplitHostPort(o.bind)
	if err != nil || host != "0.0.0.0" {
		t.Errorf("gossip is bound to %q (%v), where no other pod reaches it", o.bind, err)
	}
	if want := []string{net.JoinHostPort(service.Metadata.Name, bound)}; !slices.Equal(o.seeds, want) {
		t.Errorf("the seeds are %q, want %q", o.seeds, want)
	}
	for _, protocol := range []string{"TCP", "UDP"} {
		i := slices.IndexFunc(c.Ports, func(p port) bool { return p.Protocol == protocol && number(p.ContainerPort) == bound })
		if i < 0 {
			t.Errorf("the container does not open %s %s", protocol, bound)
			continue
		}
		if !slices.ContainsFunc(service.Spec.Ports, func(p port) bool {
			return p.Protocol == protocol && number(p.Port) == bound && p.TargetPort == c.Ports[i].Name
		}) {
			t.Errorf("the service does not lead %s %s to the container's port %q", protocol, bound, c.Ports[i].Name)
		}
	}
	if from := env(t, c, "POD_NAME").ValueFrom.FieldRef.FieldPath; o.name != "POD_NAME" || from != "metadata.name" {
		t.Errorf("the replica's name is %q of %q, want the pod's", o.name, from)
	}
	if from := env(t, c, "POD_IP").ValueFrom.FieldRef.FieldPath; o.advertise != "POD_IP" || from != "status.podIP" {
		t.Errorf("the replica advertises %q of %q, want the pod's address", o.advertise, from)
	}
}

// number is a port as it stands in an address.
func number(n int) string { return strconv.Itoa(n) }

// TestManifestSecrets: the key and the URL come from secrets, and no password stands in the manifest (S27).
func TestManifestSecrets(t *testing.T) {
	t.Parallel()
	pod := manifest(t)["StatefulSet"].Spec.Template.Spec
	c := pod.Containers[0]
	o := started(t, c)
	if ref := env(t, c, databaseURL).ValueFrom.SecretKeyRef; ref.Name == "" || ref.Key == "" {
		t.Errorf("%s is of no secret", databaseURL)
	}
	mounted := false
	for _, m := range c.VolumeMounts {
		if m.MountPath != path.Dir(o.gossipKey) {
			continue
		}
		for _, v := range pod.Volumes {
			mounted = mounted || v.Name == m.Name && v.Secret.SecretName != "" && m.ReadOnly
		}
	}
	if !mounted {
		t.Errorf("the gossip key %q is in no mounted secret", o.gossipKey)
	}
	for _, v := range c.Env {
		if v.Value != "" {
			t.Errorf("variable %s stands in the manifest: %q", v.Name, v.Value)
		}
	}
	text, err := os.ReadFile("kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`(?i)://[^/\s:]+:[^@\s]+@`).Find(text); found != nil && !strings.Contains(string(found), "USER:PASSWORD@") {
		t.Errorf("a password stands in the manifest: %s", found)
	}
}

// TestManifestProbes asks the program's own routes for the paths that are probed.
func TestManifestProbes(t *testing.T) {
	t.Parallel()
	c := manifest(t)["StatefulSet"].Spec.Template.Spec.Containers[0]
	_, served, err := net.SplitHostPort(started(t, c).http)
	if err != nil {
		t.Fatal(err)
	}
	unready := errors.New("the store fails")
	for _, p := range []struct {
		name    string
		is      probe
		unready int // status where the replica is not ready
	}{{"readiness", c.Readiness, 503}, {"liveness", c.Liveness, 200}} {
		for _, state := range []struct {
			ready error
			want  int
		}{{nil, 200}, {unready, p.unready}} {
			w := httptest.NewRecorder()
			routes(func() error { return state.ready }, prometheus.NewRegistry()).ServeHTTP(w, httptest.NewRequest("GET", p.is.HTTPGet.Path, nil))
			if w.Code != state.want {
				t.Errorf("%s: GET %s answers %d where ready is %v, want %d", p.name, p.is.HTTPGet.Path, w.Code, state.ready, state.want)
			}
		}
		if !slices.ContainsFunc(c.Ports, func(o port) bool { return o.Name == p.is.HTTPGet.Port && number(o.ContainerPort) == served }) {
			t.Errorf("%s: port %q is not the one that is served, %s", p.name, p.is.HTTPGet.Port, served)
		}
	}
	if late := time.Duration(c.Liveness.Delay) * time.Second; late < openWithin {
		t.Errorf("liveness is asked after %v, and the database may take %v to open", late, openWithin)
	}
}

// TestManifestMetrics: what is scraped is what the program serves.
func TestManifestMetrics(t *testing.T) {
	t.Parallel()
	pod := manifest(t)["StatefulSet"].Spec.Template
	_, served, err := net.SplitHostPort(started(t, pod.Spec.Containers[0]).http)
	if err != nil {
		t.Fatal(err)
	}
	a := pod.Metadata.Annotations
	if a["prometheus.io/scrape"] != "true" || a["prometheus.io/port"] != served {
		t.Errorf("annotations %v; the program serves port %s", a, served)
	}
	w := httptest.NewRecorder()
	path, _ := a["prometheus.io/path"].(string)
	registry := prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "tea", Help: "Cups."}))
	routes(func() error { return nil }, registry).ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	if w.Code != 200 || !strings.Contains(w.Body.String(), "tea 0") {
		t.Errorf("GET %s answers %d: %s", path, w.Code, w.Body)
	}
}

// TestManifestLeaves: a pod that is told to go has time to drain, to be cut off and to close, and the others stay.
func TestManifestLeaves(t *testing.T) {
	t.Parallel()
	const cutOff, closing = 6 * time.Second, 5 * time.Second // scheduler.Config.Drain says the first
	all := manifest(t)
	pod := all["StatefulSet"].Spec.Template.Spec
	if grace := time.Duration(pod.Grace) * time.Second; grace < drain+cutOff+closing {
		t.Errorf("a pod is killed after %v, and may need %v", grace, drain+cutOff+closing)
	}
	if set, budget := all["StatefulSet"], all["PodDisruptionBudget"]; set.Spec.Replicas != 3 || budget.Spec.MaxUnavailable != 1 {
		t.Errorf("%d replicas, of which %d may be gone", set.Spec.Replicas, budget.Spec.MaxUnavailable)
	}
	c := pod.Containers[0]
	if s := c.SecurityContext; !pod.SecurityContext.RunAsNonRoot || !s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		t.Errorf("the container may do more than it needs: %+v", s)
	}
	if cpu, limited := c.Resources.Limits["cpu"]; limited {
		t.Errorf("CPU is limited to %s; gossip's profile Fast wants a core", cpu)
	}
}

// TestManifestNames: every variable is one that the program reads, itself or by way of an argument.
func TestManifestNames(t *testing.T) {
	t.Parallel()
	c := manifest(t)["StatefulSet"].Spec.Template.Spec.Containers[0]
	for _, v := range c.Env {
		if v.Name != databaseURL && !strings.Contains(strings.Join(c.Args, " "), "$("+v.Name+")") {
			t.Errorf("nothing reads the variable %s", v.Name)
		}
	}
}

func env(t *testing.T, c container, name string) variable {
	t.Helper()
	i := slices.IndexFunc(c.Env, func(v variable) bool { return v.Name == name })
	if i < 0 {
		t.Fatalf("the container has no variable %s", name)
	}
	return c.Env[i]
}
