package catalogd;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.catalog.Namespace;
import org.apache.iceberg.rest.RESTCatalog;

/** Iceberg's Java client, connected to the catalog under test. */
final class Client {
  private static final String PREFIX = "catalog.";

  private Client() {}

  /**
   * Connects with every system property that begins with "catalog.", without that prefix. The tests look for the
   * defaults and overrides that are added here.
   */
  static RESTCatalog connect(String name, Map<String, String> more) {
    Map<String, String> settings = new HashMap<>();
    for (String kind : List.of("table", "view")) {
      String own = kind.equals("table") ? "default-" : "";
      String forced = kind.equals("table") ? "override-" : "";
      settings.put(kind + "-default." + own + "key1", "catalog-default-key1");
      settings.put(kind + "-default." + own + "key2", "catalog-default-key2");
      settings.put(kind + "-default." + forced + "key3", "catalog-default-key3");
      settings.put(kind + "-override." + forced + "key3", "catalog-override-key3");
      settings.put(kind + "-override." + forced + "key4", "catalog-override-key4");
    }
    System.getProperties().forEach((key, value) -> {
      if (key.toString().startsWith(PREFIX)) {
        settings.put(key.toString().substring(PREFIX.length()), value.toString());
      }
    });
    settings.putAll(more);
    RESTCatalog catalog = new RESTCatalog();
    catalog.setConf(new Configuration());
    catalog.initialize(name, settings);
    return catalog;
  }

  /**
   * Where tests ask for tables and views to be: below the system property "catalog.test-location" when it is there, else
   * where Iceberg's tests ask for it.
   */
  static String location(String otherwise, String... path) {
    String base = System.getProperty(PREFIX + "test-location");
    return base == null ? otherwise : base + "/" + String.join("/", path);
  }

  /** Drops all that the warehouse holds below parent: each test begins with an empty one. */
  static void empty(RESTCatalog catalog, Namespace parent) {
    for (Namespace each : catalog.listNamespaces(parent)) {
      empty(catalog, each);
      catalog.listTables(each).forEach(table -> catalog.dropTable(table, false));
      catalog.listViews(each).forEach(catalog::dropView);
      catalog.dropNamespace(each);
    }
  }
}
