-- One query: the table is named after the file. What follows is optional.
-- trickle:
--   comment: Revenue and orders by day
--   tags: {team: sales}
SELECT day, sum(amount) AS revenue, count(*) AS orders
FROM orders
WHERE status <> 'cancelled'
GROUP BY day
