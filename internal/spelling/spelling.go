// Package spelling finds what was probably meant by a word that nobody knows.
package spelling

// Nearest gives the known word with the smallest edit distance to word, when that is small beside its length; else "".
func Nearest(word string, known []string) string {
	best, bestDistance := "", len(word)/3+1
	for _, k := range known {
		if d := Distance(word, k); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// Distance is how many bytes must be put in, taken out or changed to make b of a (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
