package membership

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"slices"
	"sync"

	"github.com/hashicorp/memberlist"
)

// What memberlist encrypts is a version, a nonce, and the text sealed with AES-GCM. Of its versions replicas send only
// this one; of the older, memberlist removes the padding unchecked, and panics where there is none.
const (
	sealVersion = 1
	nonceSize   = 12
	sealMin     = 1 + nonceSize + 16
)

// decrypter opens what was encrypted with a key of a ring. It keeps the ciphers and one buffer, so that a packet costs
// no memory, and what many connections send is open once at a time.
type decrypter struct {
	ring *memberlist.Keyring

	mu    sync.Mutex
	keys  [][]byte // those that ciphers were made of
	seals []cipher.AEAD
	plain []byte
}

// open decrypts sealed, which was authenticated together with data, and lets vet see the text. Neither may keep it.
func (d *decrypter) open(sealed, data []byte, vet func(plain []byte) error) error {
	if len(sealed) < sealMin || sealed[0] != sealVersion {
		return refuse(RefusedMalformed, "it is not encrypted as replicas do")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.refreshLocked(); err != nil {
		return err
	}
	d.plain = slices.Grow(d.plain[:0], len(sealed))
	nonce, text := sealed[1:1+nonceSize], sealed[1+nonceSize:]
	for _, s := range d.seals {
		if plain, err := s.Open(d.plain, nonce, text, data); err == nil {
			return vet(plain)
		}
	}
	return refuse(RefusedKey, "it was encrypted with a key that this replica does not have")
}

// refreshLocked follows the ring.
func (d *decrypter) refreshLocked() error {
	keys := d.ring.GetKeys()
	if slices.EqualFunc(keys, d.keys, bytes.Equal) {
		return nil
	}
	d.seals = nil
	for _, k := range keys {
		b, err := aes.NewCipher(k)
		if err != nil {
			return err
		}
		s, err := cipher.NewGCM(b)
		if err != nil {
			return err
		}
		d.seals = append(d.seals, s)
	}
	d.keys = cloneKeys(keys)
	return nil
}
