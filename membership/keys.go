package membership

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/memberlist"
)

// checkKeys reports what is wrong with a list of gossip keys.
func checkKeys(secrets [][]byte) error {
	if len(secrets) > maxSecrets {
		return fmt.Errorf("%d secrets; at most %d", len(secrets), maxSecrets)
	}
	for i, s := range secrets {
		if err := memberlist.ValidateKey(s); err != nil {
			return fmt.Errorf("secret %d has %d bytes; use 16, 24 or 32 random bytes, the same on all replicas", i+1, len(s))
		}
		if hasKey(secrets[:i], s) {
			return fmt.Errorf("secret %d is there twice; leave it out once", i+1)
		}
	}
	return nil
}

func hasKey(keys [][]byte, k []byte) bool {
	return slices.ContainsFunc(keys, func(o []byte) bool { return bytes.Equal(o, k) })
}

// newKeys returns the ring of checked keys, nil if there are none. It shares no memory with secrets.
func newKeys(secrets [][]byte) (*memberlist.Keyring, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	return memberlist.NewKeyring(cloneKeys(secrets), bytes.Clone(secrets[0]))
}

func cloneKeys(secrets [][]byte) [][]byte {
	out := make([][]byte, len(secrets))
	for i, s := range secrets {
		out[i] = bytes.Clone(s)
	}
	return out
}

// Rotate replaces the gossip keys while the cluster runs; the first of secrets encrypts from now on, all are accepted.
// A key is changed in three rounds, each on all replicas before the next begins, so that at any moment each of them
// accepts what every other sends:
//
//	Rotate(old, new)   accept the new one
//	Rotate(new, old)   use it
//	Rotate(new)        refuse the old one
//
// So that no round can be left out, the new first key must be one of those accepted before, and the one that was used
// before must stay. A replica that missed a round is refused by the others, or refuses them, until it has caught up; who
// refuses counts it (see Stats), and it is then found again like any lost one. Rotate logs the start of each key's SHA-256. Give a replica that starts meanwhile the same list in Secrets.
//
// Rotate takes effect at once on what comes in and goes out, does not block, and is safe for concurrent use. Its errors
// are a bad list, a step that would cut this replica off, a cluster that was joined without a key (gossip without a
// key cannot get one while it runs), and that ctx has ended. After an error the keys are as they were.
func (c *Cluster) Rotate(ctx context.Context, secrets [][]byte) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("membership: rotate: %w", err)
	}
	if err := checkKeys(secrets); err != nil {
		return fmt.Errorf("membership: rotate: %w", err)
	}
	c.mu.Lock()
	err := rotate(c.keys, cloneKeys(secrets))
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("membership: rotate: %w", err)
	}
	prints := fingerprints(secrets)
	c.view.logger.Info("gossip keys changed", "uses", prints[0], "accepts", prints)
	return nil
}

// fingerprints are short names of keys that tell nothing of them.
func fingerprints(secrets [][]byte) []string {
	var all []string
	for _, s := range secrets {
		sum := sha256.Sum256(s)
		all = append(all, hex.EncodeToString(sum[:4]))
	}
	return all
}

func rotate(ring *memberlist.Keyring, secrets [][]byte) error {
	if ring == nil {
		return errors.New("this cluster was joined without a key; restart its replicas with Config.Secrets")
	}
	if len(secrets) == 0 {
		return errors.New("no secrets; gossip cannot give up its key while it runs")
	}
	before := ring.GetKeys()
	if !hasKey(before, secrets[0]) {
		return errors.New("the first secret is not accepted here yet; first give it behind the one in use, on all replicas")
	}
	if !hasKey(secrets, before[0]) {
		return errors.New("the secret in use is not in the list; first give it behind the new one, on all replicas")
	}
	if err := addKeys(ring, secrets); err != nil {
		return err
	}
	if err := ring.UseKey(secrets[0]); err != nil {
		return err
	}
	all := ring.GetKeys()
	unwanted := slices.IndexFunc(all, func(k []byte) bool { return !hasKey(secrets, k) })
	if unwanted < 0 {
		return nil
	}
	// From the end, and the wanted ones again: memberlist removes a key by shifting in place what is behind it, under
	// the eyes of those who decrypt.
	for _, k := range slices.Backward(all[unwanted:]) {
		if err := ring.RemoveKey(k); err != nil {
			return err
		}
	}
	return addKeys(ring, secrets)
}

func addKeys(ring *memberlist.Keyring, secrets [][]byte) error {
	for _, k := range secrets {
		if err := ring.AddKey(k); err != nil {
			return err
		}
	}
	return nil
}
