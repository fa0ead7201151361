package deflate

import (
	"bytes"
	"compress/gzip"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func texts() *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		part := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "part")
		return bytes.Repeat(part, rapid.IntRange(0, 600).Draw(t, "times"))
	})
}

func TestPack_GivesTheTextBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		p := Pack(text)
		got, err := p.Unpack(int64(len(text)))
		if err != nil || !bytes.Equal(got, text) {
			t.Fatalf("%d bytes came back as %d: %v", len(text), len(got), err)
		}
	})
}

// TestSplice_IsOneGzipMember reads with the standard library's reader, which checks checksum and length, and refuses to
// go on to another member.
func TestSplice_IsOneGzipMember(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		head, text, tail := texts().Draw(t, "head"), texts().Draw(t, "text"), texts().Draw(t, "tail")
		parts := Splice(head, Pack(text), tail)
		source := bytes.NewReader(bytes.Join(parts[:], nil))
		r, err := gzip.NewReader(source)
		if err != nil {
			t.Fatal(err)
		}
		r.Multistream(false)
		got, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if want := bytes.Join([][]byte{head, text, tail}, nil); !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, want %d", len(got), len(want))
		}
		if source.Len() != 0 {
			t.Fatalf("%d bytes follow the member", source.Len())
		}
	})
}

// TestSplice_StandsBehindAnyHead packs once and splices many times: blocks that referred to what stood before them
// would break behind another head.
func TestSplice_StandsBehindAnyHead(t *testing.T) {
	p := Pack([]byte(strings.Repeat("metadata ", 1000)))
	for _, head := range []string{"", "x", strings.Repeat("metadata ", 9000)} {
		parts := Splice([]byte(head), p, []byte("}"))
		r, err := gzip.NewReader(bytes.NewReader(bytes.Join(parts[:], nil)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != head+strings.Repeat("metadata ", 1000)+"}" {
			t.Errorf("head of %d: %d bytes, %v", len(head), len(got), err)
		}
	}
}

func TestCombine_IsTheChecksumOfBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := texts().Draw(t, "a"), texts().Draw(t, "b")
		got := Combine(crc32.ChecksumIEEE(a), crc32.ChecksumIEEE(b), int64(len(b)))
		if want := crc32.Update(crc32.ChecksumIEEE(a), crc32.IEEETable, b); got != want {
			t.Fatalf("%08x, want %08x", got, want)
		}
	})
}

func TestUnpack_RefusesWhatIsNotTheText(t *testing.T) {
	good := Pack([]byte(strings.Repeat("some text ", 100)))
	cases := map[string]struct {
		change func(p Packed) Packed
		want   error
	}{
		"longer":    {func(p Packed) Packed { p.Bytes++; return p }, ErrDamaged},
		"shorter":   {func(p Packed) Packed { p.Bytes--; return p }, ErrDamaged},
		"negative":  {func(p Packed) Packed { p.Bytes = -1; return p }, ErrTooLarge},
		"too large": {func(p Packed) Packed { p.Bytes = 2001; return p }, ErrTooLarge},
		"checksum":  {func(p Packed) Packed { p.Checksum++; return p }, ErrDamaged},
		"cut":       {func(p Packed) Packed { p.Blocks = p.Blocks[:len(p.Blocks)/2]; return p }, ErrDamaged},
		"noise":     {func(p Packed) Packed { p.Blocks = []byte{7, 7, 7, 7}; return p }, ErrDamaged},
	}
	for name, c := range cases {
		if _, err := c.change(good).Unpack(2000); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if _, err := good.Unpack(2000); err != nil {
		t.Error(err)
	}
}
