// Package manifest holds the example's Kubernetes manifest to the types of the API itself. It is of the tools' module, so
// that nobody who imports Belfry inherits them.
package manifest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestStrict decodes each document of the manifest into its type: a field that is misspelt, in the wrong place, given
// twice or of the wrong kind is an error.
func TestStrict(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../examples/nightly-renewals/kubernetes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(kinds) != 3 {
		t.Errorf("the manifest has %v, want three documents", kinds)
	}
	for _, slip := range []struct{ right, wrong string }{
		{"publishNotReadyAddresses: true", "publishNotReadyAddress: true"},
		{"terminationGracePeriodSeconds: 45", "terminationGracePeriodSeconds: 45s"},
		{"maxUnavailable: 1", "maxUnavailable: 1\n  maxUnavailable: 2"},
		{"kind: StatefulSet", "kind: StatefulSets"},
	} {
		if bad := bytes.Replace(text, []byte(slip.right), []byte(slip.wrong), 1); bytes.Equal(bad, text) {
			t.Errorf("the manifest has no %q", slip.right)
		} else if _, err := decode(bad); err == nil {
			t.Errorf("%q was taken", slip.wrong)
		}
	}
}

// decode returns the kinds of the documents.
func decode(text []byte) (kinds []schema.GroupVersionKind, err error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	strict := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	in := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	defer in.Close()
	page := make([]byte, 64<<10)
	for {
		n, err := in.Read(page)
		if errors.Is(err, io.EOF) {
			return kinds, nil
		}
		if err != nil {
			return nil, err
		}
		_, kind, err := strict.Decode(page[:n], nil, nil)
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, *kind)
	}
}
