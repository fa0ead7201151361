package deflate

import "hash/crc32"

// A CRC-32 is the remainder of a polynomial over the field of two elements. Its bits are mirrored: the highest bit of
// the word is the coefficient of x^0. The remainder of a text that is followed by n zero bits is the text's times x^n.

const one = uint32(1) << 31 // the polynomial 1

// powers holds x^(2^k) modulo the CRC's polynomial.
var powers = func() (p [64]uint32) {
	p[0] = one >> 1 // x
	for k := 1; k < len(p); k++ {
		p[k] = multiply(p[k-1], p[k-1])
	}
	return p
}()

// multiply gives a times b modulo the CRC's polynomial.
func multiply(a, b uint32) uint32 {
	product := uint32(0)
	for bit := one; bit != 0; bit >>= 1 {
		if a&bit != 0 {
			product ^= b
		}
		carry := b & 1
		b >>= 1 // times x
		if carry != 0 {
			b ^= crc32.IEEE
		}
	}
	return product
}

// Combine gives the CRC-32 of two texts one after the other from their own ones; bytes is the length of the second.
func Combine(first, second uint32, bytes int64) uint32 {
	shift := one
	for k, bits := 0, uint64(bytes)*8; bits != 0; k, bits = k+1, bits>>1 {
		if bits&1 != 0 {
			shift = multiply(powers[k], shift)
		}
	}
	return multiply(shift, first) ^ second
}
