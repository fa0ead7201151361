-- +goose Up
-- Lists of tables and views want names alone. With the kind beside the name in its index no row has to be looked at. The
-- index keeps its name, which refusals are told by.
CREATE UNIQUE INDEX tables_name_kind_key ON tables (namespace_id, name) INCLUDE (kind);
DROP INDEX tables_name_key;
ALTER INDEX tables_name_kind_key RENAME TO tables_name_key;
-- Top levels in their order. The index of all namespaces has those below them in between.
CREATE INDEX namespaces_top ON namespaces (warehouse_id, levels) WHERE parent_id IS NULL;

-- +goose Down
SELECT 1;
