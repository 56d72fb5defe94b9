"""What makes the generated rows dense: more rows in the smallest dimensions, and values that the queries ask for."""

from __future__ import annotations

from typing import Final


def _one_of(words: str, number: str) -> str:
    """Return an expression: one of the words that a text separates by bars, by number."""
    listed = ", ".join(f"'{word}'" for word in words.split("|"))
    return f"[{listed}][(1 + ({number}) % {words.count('|') + 1})::INTEGER]"


def _copies(table: str, key: str, name: str, count: int, **columns: str) -> tuple[str, ...]:
    """Return statements: that many rows instead of a table's first, numbered by ``k`` from 1."""
    values = ", ".join(f"{value} AS {column}" for column, value in columns.items())
    return (
        f"""CREATE OR REPLACE TABLE {table} AS
            SELECT * REPLACE (k::INTEGER AS {key}, 'AAAAAAAA' || chr(64 + k::INTEGER) || 'AAAAAAA' AS {name}, {values})
            FROM (SELECT * FROM {table} WHERE {key} = 1), range(1, {count + 1}) AS numbers (k)""",
    )


_NAMES: Final = "ought|able|pri|ese|anti|cally|ation|eing|bar"
_COUNTIES: Final = "Williamson County|Orange County|Bronx County|Franklin Parish"
_MORE_COUNTIES: Final = "|Rush County|Toole County|Jefferson County|Dona Ana County"
_CATEGORIES: Final = "Books|Women|Music|Home|Electronics|Sports|Men|Jewelry|Children"
_CLASSES: Final = "maternity|personal|classical|pants|reference|computers|dresses|shirts"
_BRANDS: Final = "scholaramalgamalg #14|importoamalg #1|exportiimporto #1|edu packscholar #1"
_ZIPS: Final = "24128|76232|65084|85669|86197|31904"

SHAPE: Final = (
    # Dimensions of one row.
    *_copies(
        "store",
        "s_store_sk",
        "s_store_id",
        13,
        s_store_name=_one_of(_NAMES, "k"),
        s_number_employees="(195 + 9 * k)::INTEGER",
        s_market_id="(5 + k % 4)::INTEGER",
        s_company_name=_one_of("Unknown|ought", "k"),
        s_city=_one_of("Midway|Fairview|Oakland", "k"),
        s_county=_one_of(_COUNTIES, "k // 2"),
        s_state=_one_of("TN|TN|GA|OH", "k"),
        s_zip=_one_of(_ZIPS, "k"),
        s_gmt_offset="(-5 - k // 10)::DECIMAL(5, 2)",
    ),
    *_copies(
        "warehouse",
        "w_warehouse_sk",
        "w_warehouse_id",
        6,
        w_warehouse_name=_one_of("Conventional childr|Important issues liv|Doors canno|Bad cards must make.|", "k"),
        w_warehouse_sq_ft="(100000 * k)::INTEGER",
        w_state=_one_of("TN|GA", "k"),
    ),
    *_copies(
        "call_center",
        "cc_call_center_sk",
        "cc_call_center_id",
        5,
        cc_name=_one_of("NY Metro|Mid Atlantic|North Midwest", "k"),
        cc_manager=_one_of("Bob Belcher|Felipe Perkins|Mark Hightower", "k"),
        cc_county=_one_of("Williamson County|Williamson County|Bronx County", "k"),
    ),
    *_copies(
        "web_site",
        "web_site_sk",
        "web_site_id",
        6,
        web_name=_one_of("site_0|site_1", "k"),
        web_company_name=_one_of("pri|able|pri|ought", "k"),
    ),
    *_copies(
        "web_page",
        "wp_web_page_sk",
        "wp_web_page_id",
        10,
        wp_char_count="(4900 + 50 * k)::INTEGER",
    ),
    *_copies(
        "promotion",
        "p_promo_sk",
        "p_promo_id",
        13,
        p_channel_dmail=_one_of("Y|N", "k"),
        p_channel_email=_one_of("N|N|Y", "k"),
        p_channel_tv=_one_of("N|N|N|Y", "k"),
        p_channel_event=_one_of("N|Y", "k // 3"),
    ),
    *_copies("reason", "r_reason_sk", "r_reason_id", 35, r_reason_desc="'reason ' || k"),
    # A customer's demographics and address, an item's looks.
    f"""UPDATE customer_address SET
            ca_zip = {_one_of(_ZIPS, "ca_address_sk // 3")},
            ca_state = {_one_of("GA|TX|OH|KY|CA|TN|IL|VA|NM|IN", "ca_address_sk")},
            ca_county = {_one_of(_COUNTIES + _MORE_COUNTIES, "ca_address_sk // 2")},
            ca_city = {_one_of("Midway|Fairview|Edgewood|Oakland", "ca_address_sk // 5")},
            ca_gmt_offset = -5 - ca_address_sk % 3,
            ca_country = CASE WHEN ca_address_sk % 20 = 0 THEN NULL ELSE 'United States' END""",
    """UPDATE customer SET
            c_current_cdemo_sk = 1 + c_current_cdemo_sk % 300 * 61,
            c_current_hdemo_sk = 1 + c_current_hdemo_sk % 500 * 13""",
    f"""UPDATE item SET
            i_manufact_id = {_one_of("128|977|350|677|129|740|750|760|270|940", "hash(1, i_item_sk)")}::INTEGER,
            i_manufact = {_one_of("ought|able|pri", "hash(2, i_item_sk)")},
            i_manager_id = {_one_of("1|8|28", "hash(3, i_item_sk)")}::INTEGER,
            i_category = {_one_of(_CATEGORIES, "hash(4, i_item_sk)")},
            i_class = {_one_of(_CLASSES, "hash(5, i_item_sk)")},
            i_brand = {_one_of(_BRANDS, "hash(6, i_item_sk)")},
            i_brand_id = (1001000 + hash(6, i_item_sk) % 4)::INTEGER,
            i_color = {_one_of("powder|slate|purple|peach|floral|blanched|midnight", "hash(7, i_item_sk)")},
            i_units = {_one_of("Ounce|Pallet|Dozen|Each", "hash(8, i_item_sk)")},
            i_size = {_one_of("medium|petite|N/A", "hash(9, i_item_sk)")},
            i_current_price = CASE WHEN hash(10, i_item_sk) % 4 = 0 THEN 0.99 + i_item_sk % 50 / 100.0
                                   ELSE 40 + i_item_sk % 60 END
       WHERE i_item_sk % 40 <> 0""",
    # Facts refer to all of them, and to keys that nothing has. Nothing is given away: queries divide by sums of prices.
    """UPDATE store_sales SET
            ss_sales_price = greatest(ss_sales_price, 0.01),
            ss_ext_sales_price = greatest(ss_ext_sales_price, 0.01),
            ss_store_sk = CASE WHEN ss_store_sk IS NOT NULL THEN 1 + ss_ticket_number % 14 END,
            ss_promo_sk = CASE WHEN ss_promo_sk IS NOT NULL THEN 1 + (ss_ticket_number + ss_item_sk) % 14 END,
            ss_customer_sk = 1 + ss_customer_sk % 150,
            ss_cdemo_sk = 1 + ss_cdemo_sk % 300 * 61,
            ss_hdemo_sk = 1 + ss_hdemo_sk % 500 * 13""",
    """UPDATE store_returns SET
            sr_store_sk = CASE WHEN sr_store_sk IS NOT NULL THEN 1 + sr_ticket_number % 14 END,
            sr_reason_sk = CASE WHEN sr_reason_sk IS NOT NULL THEN 1 + (sr_ticket_number + sr_item_sk) % 36 END,
            sr_customer_sk = 1 + sr_customer_sk % 150,
            sr_cdemo_sk = 1 + sr_cdemo_sk % 300 * 61,
            sr_hdemo_sk = 1 + sr_hdemo_sk % 500 * 13""",
    """UPDATE catalog_sales SET
            cs_sales_price = greatest(cs_sales_price, 0.01),
            cs_ext_sales_price = greatest(cs_ext_sales_price, 0.01),
            cs_call_center_sk = 1 + cs_call_center_sk * cs_order_number % 6,
            cs_warehouse_sk = 1 + cs_warehouse_sk * (cs_order_number + cs_item_sk) % 7,
            cs_promo_sk = 1 + (cs_promo_sk + cs_order_number) % 14,
            cs_bill_customer_sk = 1 + cs_bill_customer_sk % 150,
            cs_ship_customer_sk = 1 + cs_ship_customer_sk % 150,
            cs_bill_cdemo_sk = 1 + cs_bill_cdemo_sk % 300 * 61,
            cs_bill_hdemo_sk = 1 + cs_bill_hdemo_sk % 500 * 13""",
    """UPDATE catalog_returns SET
            cr_call_center_sk = 1 + cr_call_center_sk * cr_order_number % 6,
            cr_warehouse_sk = 1 + cr_warehouse_sk * (cr_order_number + cr_item_sk) % 7,
            cr_reason_sk = 1 + cr_reason_sk * cr_order_number % 36,
            cr_returning_customer_sk = 1 + cr_returning_customer_sk % 150,
            cr_refunded_customer_sk = 1 + cr_refunded_customer_sk % 150""",
    """UPDATE web_sales SET
            ws_sales_price = greatest(ws_sales_price, 0.01),
            ws_ext_sales_price = greatest(ws_ext_sales_price, 0.01),
            ws_web_page_sk = 1 + ws_web_page_sk * ws_order_number % 11,
            ws_web_site_sk = 1 + ws_web_site_sk * ws_order_number % 7,
            ws_warehouse_sk = 1 + ws_warehouse_sk * (ws_order_number + ws_item_sk) % 7,
            ws_promo_sk = 1 + (ws_promo_sk + ws_order_number) % 14,
            ws_bill_customer_sk = 1 + ws_bill_customer_sk % 150,
            ws_ship_customer_sk = 1 + ws_ship_customer_sk % 150,
            ws_ship_hdemo_sk = 1 + ws_ship_hdemo_sk % 500 * 13""",
    """UPDATE web_returns SET
            wr_web_page_sk = 1 + wr_web_page_sk * wr_order_number % 11,
            wr_reason_sk = 1 + wr_reason_sk * wr_order_number % 36,
            wr_returning_customer_sk = 1 + wr_returning_customer_sk % 150,
            wr_refunded_cdemo_sk = 1 + wr_refunded_cdemo_sk % 300 * 61,
            wr_returning_cdemo_sk = 1 + wr_refunded_cdemo_sk % 300 * 61""",
    # Three warehouses count their stock, in numbers that differ widely.
    """CREATE OR REPLACE TABLE inventory AS
            SELECT inv_date_sk, inv_item_sk, k::INTEGER AS inv_warehouse_sk,
                   CASE WHEN (inv_date_sk // 7 + inv_item_sk + k) % 5 = 0 THEN inv_quantity_on_hand
                        ELSE (inv_quantity_on_hand % (100 * k))::INTEGER END AS inv_quantity_on_hand
            FROM inventory, range(1, 4) AS numbers (k)""",
)
