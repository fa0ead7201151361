package api

import (
	"fmt"
	"net/url"
	"sort"
	"testing"

	"pgregory.net/rapid"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// listAfter is a store's list: names after the last one, at most limit.
func listAfter(names []string, p catalog.Page) []string {
	from := sort.SearchStrings(names, p.After)
	if p.After != "" && from < len(names) && names[from] == p.After {
		from++
	}
	rest := names[from:]
	if p.Limit > 0 && len(rest) > p.Limit {
		rest = rest[:p.Limit]
	}
	return rest
}

// walk pages to the end as Java does: until the token is null.
func walk(names []string, size int) (got []string, pages int, err error) {
	query := url.Values{"pageToken": {""}, "pageSize": {fmt.Sprint(size)}}
	for {
		paging, err := PagingOf(query)
		if err != nil {
			return nil, pages, err
		}
		page, next := CutPage(paging, listAfter(names, paging.Page()), func(s string) string { return s })
		got = append(got, page...)
		pages++
		if next == nil {
			return got, pages, nil
		}
		if *next == "" || pages > len(names)+1 {
			return nil, pages, fmt.Errorf("token %q after %d pages", *next, pages)
		}
		query.Set("pageToken", *next)
	}
}

func TestField_C053_TheLastPageHasNoToken(t *testing.T) {
	names := make([]string, 100)
	for i := range names {
		names[i] = fmt.Sprintf("t%03d", i)
	}
	for size, pages := range map[int]int{100: 1, 50: 2, 33: 4, 1: 100, 101: 1, 1 << 30: 1} {
		got, n, err := walk(names, size)
		if err != nil || n != pages || len(got) != 100 {
			t.Errorf("by %d: %d names in %d pages, %v", size, len(got), n, err)
		}
	}
	if got, n, err := walk(nil, 10); err != nil || n != 1 || len(got) != 0 {
		t.Errorf("empty list: %v %d %v", got, n, err)
	}
}

func TestPaging_AnyNamesInAnySizes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z "\\ä%/]{1,6}`), 0, 40, rapid.ID[string]).Draw(rt, "names")
		sort.Strings(names)
		got, _, err := walk(names, rapid.IntRange(1, 45).Draw(rt, "size"))
		if err != nil || fmt.Sprint(got) != fmt.Sprint(names) && len(names) > 0 {
			rt.Fatalf("%q became %q, %v", names, got, err)
		}
	})
}

func TestPaging_ClientsThatCannotPageGetEverything(t *testing.T) {
	for _, query := range []url.Values{{}, {"pageSize": {"2"}}} {
		paging, err := PagingOf(query)
		if err != nil || paging.Page().Limit != 0 {
			t.Errorf("%v: %+v %v", query, paging, err)
		}
		if page, next := CutPage(paging, []int{1, 2, 3}, func(int) string { return "" }); len(page) != 3 || next != nil {
			t.Errorf("%v: %v %v", query, page, next)
		}
	}
}

func TestPaging_Refusals(t *testing.T) {
	for _, query := range []string{
		"pageSize=0", "pageSize=-1", "pageSize=x", "pageSize=1.5", "pageToken=x!", "pageToken=e30", "pageToken=eyJ2Ijo5fQ",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := PagingOf(values); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestFlag_PythonAndJavaSpellings(t *testing.T) {
	for text, want := range map[string]bool{"true": true, "True": true, "TRUE": true, "false": false, "False": false, "": false} {
		if got, err := Flag(url.Values{"f": {text}}, "f"); err != nil || got != want {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"yes", "2", "null"} {
		if _, err := Flag(url.Values{"f": {text}}, "f"); !fault.Is(err, fault.BadRequest) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
