package catalogtest

import (
	"github.com/google/uuid"

	"catalogd/authz"
	"catalogd/catalog"
	"catalogd/internal/fault"
)

var grantPromises = []promise{
	{"ManyGrantsChangeTogether", func(b *bench) {
		reader, writer := b.addCatalogRole("reader"), b.addCatalogRole("writer")
		on := func(p authz.Privilege) catalog.RoleGrant {
			return catalog.RoleGrant{Privilege: p, Kind: authz.Catalog, ID: b.warehouse.ID}
		}
		write := func(r catalog.RoleRecord, p authz.Privilege, revoke bool) catalog.GrantWrite {
			return catalog.GrantWrite{Role: r, Grant: on(p), Revoke: revoke, Fact: b.fact("change", r.Name)}
		}
		held := func(want ...authz.Privilege) {
			b.Helper()
			grants, err := b.admin.ListGrants(b.Context(), reader, catalog.GrantKey{}, 0)
			b.must(err)
			for i := range grants {
				if len(grants) != len(want) || grants[i].Privilege != want[i] {
					b.Fatalf("%v, want %v", grants, want)
				}
			}
			if len(grants) != len(want) {
				b.Fatalf("%v, want %v", grants, want)
			}
		}
		b.must(b.admin.ChangeGrants(b.Context(), []catalog.GrantWrite{
			write(reader, authz.TableList, false), write(reader, authz.TableReadData, false), write(writer, authz.TableWriteData, false),
			write(reader, authz.TableList, true), write(reader, authz.TableDrop, false), write(reader, authz.TableDrop, true),
		}))
		held(authz.TableReadData)
		b.leavesNoTrace(func() {
			b.must(b.admin.ChangeGrants(b.Context(), []catalog.GrantWrite{
				write(reader, authz.TableReadData, false), write(reader, authz.TableList, true), // changes nothing
			}))
			gone := catalog.RoleRecord{ID: uuid.New(), WarehouseID: b.warehouse.ID, Name: "gone"}
			b.refused(b.admin.ChangeGrants(b.Context(), []catalog.GrantWrite{
				write(reader, authz.TableDrop, false), write(reader, authz.TableReadData, true), write(gone, authz.TableList, false),
			}), fault.NotFound, "")
		})
		held(authz.TableReadData)
	}},
}
