-- Several tables in one file. Their order does not matter: who reads whom is found in the queries.
CREATE STREAM TABLE top_customers
COMMENT 'The ten best customers of each region'
AS SELECT region, customer_id, name, revenue, place
FROM (SELECT *, rank() OVER (PARTITION BY region ORDER BY revenue DESC, customer_id) AS place FROM customer_revenue)
WHERE place <= 10;

CREATE STREAM TABLE customer_revenue
REFRESH POLICY INCREMENTAL STRICT
AS SELECT c.id AS customer_id, c.name, c.region, sum(o.amount) AS revenue, count(*) AS orders
FROM customers c JOIN orders o ON o.customer_id = c.id
GROUP BY c.id, c.name, c.region;
