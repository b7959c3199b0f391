UNWIND range(1, 2000) AS n RETURN sum(n * n % 7) AS total
